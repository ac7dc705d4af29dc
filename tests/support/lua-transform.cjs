module.exports = { process: (text) => ({ code: `export default ${JSON.stringify(text)};` }) };
