import { Vault } from "runvault";

async function main(): Promise<void> {
  const artifacts = await new Vault().find();
  console.log("commonjs", artifacts.map((artifact) => artifact.kind).sort());
}

void main();
