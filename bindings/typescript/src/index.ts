export type * from "./api.js";
export { CommandFailed, ProgramNotFound, type ProgramOptions } from "./options.js";
export {
  Gateway,
  GatewayRun,
  type FinishedRun,
  type GatewayMode,
  type GatewayOptions,
  type RunOptions,
  type RunReport,
  type UnusedRecording,
} from "./gateway.js";
export {
  RecordedError,
  Replay,
  ReplayEnded,
  ReplayError,
  ReplayMiss,
  type Json,
  type ReplayOptions,
  type ReplayQuestion,
  type ReplayResponse,
} from "./replay.js";
export {
  Vault,
  type Conditions,
  type DiffOptions,
  type FindOptions,
  type GetOptions,
  type Link,
  type LinksOptions,
  type ListOptions,
  type SearchOptions,
  type TimeBasis,
  type ViewOptions,
  type What,
} from "./vault.js";
