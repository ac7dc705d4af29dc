package holdfast.interop;

import java.lang.instrument.ClassFileTransformer;
import java.lang.instrument.Instrumentation;
import java.security.ProtectionDomain;
import net.bytebuddy.jar.asm.ClassReader;
import net.bytebuddy.jar.asm.ClassVisitor;
import net.bytebuddy.jar.asm.ClassWriter;
import net.bytebuddy.jar.asm.MethodVisitor;
import net.bytebuddy.jar.asm.Opcodes;

/**
 * `-javaagent:worker.jar=60000`: all of Redisson reads a clock that is a minute ahead. Only the times that it writes and
 * compares are shifted. Its timers and sockets use the machine's own clock.
 */
public final class ShiftedClock implements ClassFileTransformer {
    private static volatile long aheadMs;

    public static void premain(String ahead, Instrumentation instrumentation) {
        aheadMs = Long.parseLong(ahead);
        instrumentation.addTransformer(new ShiftedClock());
    }

    /** Redisson calls this method instead of the method of the same name in System. */
    public static long currentTimeMillis() {
        return System.currentTimeMillis() + aheadMs;
    }

    @Override
    public byte[] transform(
            ClassLoader loader, String name, Class<?> redefined, ProtectionDomain domain, byte[] original) {
        if (name == null || !name.startsWith("org/redisson/")) return null;
        ClassReader reader = new ClassReader(original);
        ClassWriter writer = new ClassWriter(reader, 0);
        reader.accept(new Shifting(writer), 0);
        return writer.toByteArray();
    }

    private static final class Shifting extends ClassVisitor {
        private static final int API = Opcodes.ASM9;

        Shifting(ClassVisitor next) {
            super(API, next);
        }

        @Override
        public MethodVisitor visitMethod(int access, String name, String type, String generic, String[] thrown) {
            return new MethodVisitor(API, super.visitMethod(access, name, type, generic, thrown)) {
                @Override
                public void visitMethodInsn(int opcode, String owner, String called, String with, boolean ofInterface) {
                    boolean readsClock = owner.equals("java/lang/System") && called.equals("currentTimeMillis");
                    String by = readsClock ? "holdfast/interop/ShiftedClock" : owner;
                    super.visitMethodInsn(opcode, by, called, with, ofInterface);
                }
            };
        }
    }
}
