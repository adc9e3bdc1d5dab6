import { Vault } from "runvault";

const artifacts = await new Vault().find();
console.log("modules", artifacts.map((artifact) => artifact.kind).sort());
