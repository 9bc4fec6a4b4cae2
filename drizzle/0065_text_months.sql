CREATE TABLE `text_parts` (
	`name` text PRIMARY KEY NOT NULL,
	`before` integer NOT NULL,
	`month` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `messages_reactions` ON `messages` (`reply_id`) WHERE emoji;--> statement-breakpoint
CREATE INDEX `messages_failed` ON `messages` (`id`) WHERE routing_error is not null;--> statement-breakpoint
INSERT INTO `text_parts` VALUES ('messages_text', 9007199254740991,
	iif(EXISTS (SELECT 1 FROM `messages`), 0, strftime('%Y') * 12 + strftime('%m') - 1));--> statement-breakpoint
-- Every 16,384th row has the three private letters too, which every search also finds: otherwise FTS5 would read on until
-- a text has all that is looked for, however long that takes.
INSERT INTO `messages_text` (rowid, text)
	WITH RECURSIVE i(n) AS (
		SELECT (`indexed_from` / 16384 + 1) * 16384 FROM `text_indexes` WHERE `table_name` = 'messages'
		UNION ALL SELECT n + 16384 FROM i WHERE n < (SELECT max(`id`) FROM `messages`)
	)
	SELECT n, char(57344, 57345, 57346) FROM i WHERE n <= (SELECT max(`id`) FROM `messages`);--> statement-breakpoint
-- No text changes. Where the service keeps a part for each month, a deleted message stays until its part is dropped.
DROP TRIGGER `messages_text_deleted`;--> statement-breakpoint
CREATE TRIGGER `messages_text_deleted` AFTER DELETE ON `messages`
WHEN OLD.`id` >= (SELECT `indexed_from` FROM `text_indexes` WHERE `table_name` = 'messages')
BEGIN
	INSERT INTO `messages_text` (`messages_text`, rowid, text) VALUES ('delete', OLD.`id`,
		iif(instr(OLD.`text`, char(0)) > 0 OR OLD.`id` % 16384 = 0, char(57344, 57345, 57346), '') || OLD.`text`);
END;--> statement-breakpoint
DROP TRIGGER `messages_text_updated`;--> statement-breakpoint
DROP TRIGGER `messages_text_inserted`;--> statement-breakpoint
CREATE TRIGGER `messages_text_inserted` AFTER INSERT ON `messages`
WHEN NEW.`id` >= (SELECT `indexed_from` FROM `text_indexes` WHERE `table_name` = 'messages')
BEGIN
	INSERT INTO `messages_text` (rowid, text) VALUES (NEW.`id`,
		iif(instr(NEW.`text`, char(0)) > 0 OR NEW.`id` % 16384 = 0, char(57344, 57345, 57346), '') || NEW.`text`);
END;
