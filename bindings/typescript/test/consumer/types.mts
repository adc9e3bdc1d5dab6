// The types of the package need no others, not even those of Node.
import { Replay, Vault, type FoundArtifact, type Link } from "runvault";

export async function hashes(vault: Vault): Promise<string[]> {
  const found: FoundArtifact[] = await vault.find("runs", { labels: { team: "support" } });
  const links: Link[] = (await Promise.all(found.map((hit) => vault.links(hit.core_hash)))).flat();
  return links.map((link) => link.core_hash ?? link.name ?? "");
}

// @ts-expect-error A kind that does not exist.
export const wrong = new Vault().find("plans");

export const response: Promise<string> = new Replay("latest", { sequential: true }).respond("hello");
