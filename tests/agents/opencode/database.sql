CREATE TABLE `session` (
  `id` text PRIMARY KEY,
  `project_id` text NOT NULL,
  `workspace_id` text,
  `parent_id` text,
  `slug` text NOT NULL,
  `directory` text NOT NULL,
  `path` text,
  `title` text NOT NULL,
  `version` text NOT NULL,
  `share_url` text,
  `summary_additions` integer,
  `summary_deletions` integer,
  `summary_files` integer,
  `summary_diffs` text,
  `metadata` text,
  `cost` real DEFAULT 0 NOT NULL,
  `tokens_input` integer DEFAULT 0 NOT NULL,
  `tokens_output` integer DEFAULT 0 NOT NULL,
  `tokens_reasoning` integer DEFAULT 0 NOT NULL,
  `tokens_cache_read` integer DEFAULT 0 NOT NULL,
  `tokens_cache_write` integer DEFAULT 0 NOT NULL,
  `revert` text,
  `permission` text,
  `agent` text,
  `model` text,
  `time_created` integer NOT NULL,
  `time_updated` integer NOT NULL,
  `time_compacting` integer,
  `time_archived` integer
  );
INSERT INTO session VALUES ('ses_dda61e559ffeY1bhsq3SUr0HWu', 'global', NULL, NULL, 'kind-harbor', '/home/user/project', '', 'Say hello', '1.18.33', NULL, 0, 0, 0, NULL, NULL, 0.00759, 2000, 84, 0, 600, 40, NULL, '[{"permission":"question","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"}]', 'build', '{"id":"claude-sonnet-4-5","providerID":"anthropic","variant":"default"}', 1795927448231, 1795927455928, NULL, NULL);
CREATE TABLE `message` (
  `id` text PRIMARY KEY,
  `session_id` text NOT NULL,
  `time_created` integer NOT NULL,
  `time_updated` integer NOT NULL,
  `data` text NOT NULL
  );
INSERT INTO message VALUES ('msg_2259e1b5e001GNIc3MxmyKGSDw', 'ses_dda61e559ffeY1bhsq3SUr0HWu', 1795927448414, 1795927455291, '{"role":"user","time":{"created":1795927448414},"agent":"build","model":{"providerID":"anthropic","modelID":"claude-sonnet-4-5"},"summary":{"diffs":[]}}');
INSERT INTO message VALUES ('msg_2259e242100109wdMC6IZnd4Sw', 'ses_dda61e559ffeY1bhsq3SUr0HWu', 1795927450657, 1795927454828, '{"parentID":"msg_2259e1b5e001GNIc3MxmyKGSDw","role":"assistant","mode":"build","agent":"build","path":{"cwd":"/home/user/project","root":"/home/user/project"},"cost":0.003795,"tokens":{"total":1362,"input":1000,"output":42,"reasoning":0,"cache":{"write":20,"read":300}},"modelID":"claude-sonnet-4-5","providerID":"anthropic","time":{"created":1795927450657,"completed":1795927454825},"finish":"tool-calls"}');
INSERT INTO message VALUES ('msg_2259e3475001j11z3XD4MpX0XA', 'ses_dda61e559ffeY1bhsq3SUr0HWu', 1795927454838, 1795927455872, '{"parentID":"msg_2259e1b5e001GNIc3MxmyKGSDw","role":"assistant","mode":"build","agent":"build","path":{"cwd":"/home/user/project","root":"/home/user/project"},"cost":0.003795,"tokens":{"total":1362,"input":1000,"output":42,"reasoning":0,"cache":{"write":20,"read":300}},"modelID":"claude-sonnet-4-5","providerID":"anthropic","time":{"created":1795927454838,"completed":1795927455869},"finish":"stop"}');
CREATE TABLE `part` (
  `id` text PRIMARY KEY,
  `message_id` text NOT NULL,
  `session_id` text NOT NULL,
  `time_created` integer NOT NULL,
  `time_updated` integer NOT NULL,
  `data` text NOT NULL
  );
INSERT INTO part VALUES ('prt_2259e1b79001XjJbWqi9r1bisT', 'msg_2259e1b5e001GNIc3MxmyKGSDw', 'ses_dda61e559ffeY1bhsq3SUr0HWu', 1795927450598, 1795927450604, '{"type":"text","text":"\"Run echo hello please\""}');
INSERT INTO part VALUES ('prt_2259e317f001wWdRdUGZO7d4Od', 'msg_2259e242100109wdMC6IZnd4Sw', 'ses_dda61e559ffeY1bhsq3SUr0HWu', 1795927454080, 1795927454089, '{"snapshot":"444a8fa98e219b9ee8585973bba9425676aba452","type":"step-start"}');
INSERT INTO part VALUES ('prt_2259e3191001igjfhS4sDbSLOu', 'msg_2259e242100109wdMC6IZnd4Sw', 'ses_dda61e559ffeY1bhsq3SUr0HWu', 1795927454097, 1795927454127, '{"type":"text","text":"I run it.","time":{"start":1795927454097,"end":1795927454119}}');
INSERT INTO part VALUES ('prt_2259e31c0001u7X0hzP9SGFV52', 'msg_2259e242100109wdMC6IZnd4Sw', 'ses_dda61e559ffeY1bhsq3SUr0HWu', 1795927454145, 1795927454518, '{"type":"tool","tool":"bash","callID":"toolu_01eba9bd9a77694083bbbce3","state":{"status":"completed","input":{"command":"echo hello","description":"Print"},"output":"hello\n","metadata":{"output":"hello\n","exit":0,"truncated":false},"title":"echo hello","time":{"start":1795927454186,"end":1795927454515}}}');
INSERT INTO part VALUES ('prt_2259e33ee001q859CA8MCsa7eS', 'msg_2259e242100109wdMC6IZnd4Sw', 'ses_dda61e559ffeY1bhsq3SUr0HWu', 1795927454702, 1795927454707, '{"reason":"tool-calls","snapshot":"444a8fa98e219b9ee8585973bba9425676aba452","type":"step-finish","tokens":{"total":1362,"input":1000,"output":42,"reasoning":0,"cache":{"write":20,"read":300}},"cost":0.003795}');
INSERT INTO part VALUES ('prt_2259e35da001MozpWyuh1JwBbv', 'msg_2259e3475001j11z3XD4MpX0XA', 'ses_dda61e559ffeY1bhsq3SUr0HWu', 1795927455194, 1795927455196, '{"snapshot":"444a8fa98e219b9ee8585973bba9425676aba452","type":"step-start"}');
INSERT INTO part VALUES ('prt_2259e35de001ywMMiiHK4eLwJr', 'msg_2259e3475001j11z3XD4MpX0XA', 'ses_dda61e559ffeY1bhsq3SUr0HWu', 1795927455199, 1795927455209, '{"type":"text","text":"The output was hello.","time":{"start":1795927455198,"end":1795927455207}}');
INSERT INTO part VALUES ('prt_2259e3765001CSViLb1fYp0a8S', 'msg_2259e3475001j11z3XD4MpX0XA', 'ses_dda61e559ffeY1bhsq3SUr0HWu', 1795927455589, 1795927455591, '{"reason":"stop","snapshot":"444a8fa98e219b9ee8585973bba9425676aba452","type":"step-finish","tokens":{"total":1362,"input":1000,"output":42,"reasoning":0,"cache":{"write":20,"read":300}},"cost":0.003795}');
