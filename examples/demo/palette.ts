/** The colors and the font of the demo's timeline, and of the pictures in the guide. */
export const INK = '#1f2933';
export const FAINT = '#7b8794';
export const RULE = '#e4e7eb';
export const ALARM = '#c81e1e';
export const WORKER_COLORS = ['#2f6fde', '#e08a00', '#12925b', '#8447d6'] as const;
export const FONT = "Inter, 'Segoe UI', 'Helvetica Neue', 'DejaVu Sans', sans-serif";
