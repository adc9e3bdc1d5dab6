import { defineConfig } from "vitest/config";

// The tests of test/consumer are those of another project.
export default defineConfig({ test: { include: ["test/*.test.ts"] } });
