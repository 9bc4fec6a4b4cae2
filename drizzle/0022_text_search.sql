CREATE TABLE `text_indexes` (
	`table_name` text PRIMARY KEY NOT NULL,
	`indexed_from` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `messages_unfinished` ON `messages` (`id`) WHERE delivery_state in ('queued', 'sent');--> statement-breakpoint
CREATE INDEX `messages_direct_from` ON `messages` (`from_node_num`,`id`) WHERE to_node_num <> 4294967295;--> statement-breakpoint
CREATE INDEX `messages_direct_to` ON `messages` (`to_node_num`,`id`) WHERE to_node_num <> 4294967295;--> statement-breakpoint
CREATE INDEX `nodes_local` ON `nodes` (`device_metrics_time`) WHERE is_local;--> statement-breakpoint
-- Each index holds all runs of three letters of the texts of a table; whether a text that it finds has the whole of what
-- is looked for, its row tells. FTS5 reads no further than a NUL: a text with one begins with three private letters, and
-- every search looks at those too.
CREATE VIRTUAL TABLE `messages_text` USING fts5(text, content='', columnsize=0, detail=none, tokenize='trigram');--> statement-breakpoint
INSERT INTO `text_indexes` SELECT 'messages', coalesce(max(`id`), 0) + 1 FROM `messages`;--> statement-breakpoint
CREATE TRIGGER `messages_text_inserted` AFTER INSERT ON `messages`
WHEN NEW.`id` >= (SELECT `indexed_from` FROM `text_indexes` WHERE `table_name` = 'messages')
BEGIN
	INSERT INTO `messages_text` (rowid, text) VALUES (NEW.`id`,
		iif(instr(NEW.`text`, char(0)) > 0, char(57344, 57345, 57346), '') || NEW.`text`);
END;--> statement-breakpoint
CREATE TRIGGER `messages_text_deleted` AFTER DELETE ON `messages`
WHEN OLD.`id` >= (SELECT `indexed_from` FROM `text_indexes` WHERE `table_name` = 'messages')
BEGIN
	INSERT INTO `messages_text` (`messages_text`, rowid, text) VALUES ('delete', OLD.`id`,
		iif(instr(OLD.`text`, char(0)) > 0, char(57344, 57345, 57346), '') || OLD.`text`);
END;--> statement-breakpoint
CREATE TRIGGER `messages_text_updated` AFTER UPDATE OF `text` ON `messages`
WHEN OLD.`text` IS NOT NEW.`text`
	AND OLD.`id` >= (SELECT `indexed_from` FROM `text_indexes` WHERE `table_name` = 'messages')
BEGIN
	INSERT INTO `messages_text` (`messages_text`, rowid, text) VALUES ('delete', OLD.`id`,
		iif(instr(OLD.`text`, char(0)) > 0, char(57344, 57345, 57346), '') || OLD.`text`);
	INSERT INTO `messages_text` (rowid, text) VALUES (NEW.`id`,
		iif(instr(NEW.`text`, char(0)) > 0, char(57344, 57345, 57346), '') || NEW.`text`);
END;--> statement-breakpoint
CREATE VIRTUAL TABLE `nodes_text` USING fts5(text, content='', columnsize=0, detail=none, tokenize='trigram');--> statement-breakpoint
INSERT INTO `text_indexes` SELECT 'nodes', coalesce(max(`id`), 0) + 1 FROM `nodes`;--> statement-breakpoint
CREATE TRIGGER `nodes_text_inserted` AFTER INSERT ON `nodes`
WHEN NEW.`id` >= (SELECT `indexed_from` FROM `text_indexes` WHERE `table_name` = 'nodes')
BEGIN
	INSERT INTO `nodes_text` (rowid, text) VALUES (NEW.`id`,
		iif(instr(coalesce(NEW.`long_name`, '') || char(10) || coalesce(NEW.`short_name`, '') || char(10) || printf('!%08x', NEW.`node_num`), char(0)) > 0, char(57344, 57345, 57346), '') || coalesce(NEW.`long_name`, '') || char(10) || coalesce(NEW.`short_name`, '') || char(10) || printf('!%08x', NEW.`node_num`));
END;--> statement-breakpoint
CREATE TRIGGER `nodes_text_deleted` AFTER DELETE ON `nodes`
WHEN OLD.`id` >= (SELECT `indexed_from` FROM `text_indexes` WHERE `table_name` = 'nodes')
BEGIN
	INSERT INTO `nodes_text` (`nodes_text`, rowid, text) VALUES ('delete', OLD.`id`,
		iif(instr(coalesce(OLD.`long_name`, '') || char(10) || coalesce(OLD.`short_name`, '') || char(10) || printf('!%08x', OLD.`node_num`), char(0)) > 0, char(57344, 57345, 57346), '') || coalesce(OLD.`long_name`, '') || char(10) || coalesce(OLD.`short_name`, '') || char(10) || printf('!%08x', OLD.`node_num`));
END;--> statement-breakpoint
CREATE TRIGGER `nodes_text_updated` AFTER UPDATE OF `long_name`, `short_name`, `node_num` ON `nodes`
WHEN (OLD.`long_name` IS NOT NEW.`long_name` OR OLD.`short_name` IS NOT NEW.`short_name` OR OLD.`node_num` IS NOT NEW.`node_num`)
	AND OLD.`id` >= (SELECT `indexed_from` FROM `text_indexes` WHERE `table_name` = 'nodes')
BEGIN
	INSERT INTO `nodes_text` (`nodes_text`, rowid, text) VALUES ('delete', OLD.`id`,
		iif(instr(coalesce(OLD.`long_name`, '') || char(10) || coalesce(OLD.`short_name`, '') || char(10) || printf('!%08x', OLD.`node_num`), char(0)) > 0, char(57344, 57345, 57346), '') || coalesce(OLD.`long_name`, '') || char(10) || coalesce(OLD.`short_name`, '') || char(10) || printf('!%08x', OLD.`node_num`));
	INSERT INTO `nodes_text` (rowid, text) VALUES (NEW.`id`,
		iif(instr(coalesce(NEW.`long_name`, '') || char(10) || coalesce(NEW.`short_name`, '') || char(10) || printf('!%08x', NEW.`node_num`), char(0)) > 0, char(57344, 57345, 57346), '') || coalesce(NEW.`long_name`, '') || char(10) || coalesce(NEW.`short_name`, '') || char(10) || printf('!%08x', NEW.`node_num`));
END;--> statement-breakpoint
CREATE VIRTUAL TABLE `audit_log_text` USING fts5(text, content='', columnsize=0, detail=none, tokenize='trigram');--> statement-breakpoint
INSERT INTO `text_indexes` SELECT 'audit_log', coalesce(max(`id`), 0) + 1 FROM `audit_log`;--> statement-breakpoint
CREATE TRIGGER `audit_log_text_inserted` AFTER INSERT ON `audit_log`
WHEN NEW.`id` >= (SELECT `indexed_from` FROM `text_indexes` WHERE `table_name` = 'audit_log')
BEGIN
	INSERT INTO `audit_log_text` (rowid, text) VALUES (NEW.`id`,
		iif(instr(coalesce(NEW.`username`, '') || char(10) || NEW.`action` || char(10) || NEW.`details` || char(10) || coalesce(NEW.`ip`, ''), char(0)) > 0, char(57344, 57345, 57346), '') || coalesce(NEW.`username`, '') || char(10) || NEW.`action` || char(10) || NEW.`details` || char(10) || coalesce(NEW.`ip`, ''));
END;--> statement-breakpoint
CREATE TRIGGER `audit_log_text_deleted` AFTER DELETE ON `audit_log`
WHEN OLD.`id` >= (SELECT `indexed_from` FROM `text_indexes` WHERE `table_name` = 'audit_log')
BEGIN
	INSERT INTO `audit_log_text` (`audit_log_text`, rowid, text) VALUES ('delete', OLD.`id`,
		iif(instr(coalesce(OLD.`username`, '') || char(10) || OLD.`action` || char(10) || OLD.`details` || char(10) || coalesce(OLD.`ip`, ''), char(0)) > 0, char(57344, 57345, 57346), '') || coalesce(OLD.`username`, '') || char(10) || OLD.`action` || char(10) || OLD.`details` || char(10) || coalesce(OLD.`ip`, ''));
END;