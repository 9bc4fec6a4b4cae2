CREATE TABLE `audit_chain` (
	`id` integer PRIMARY KEY NOT NULL,
	`trimmed_id` integer NOT NULL,
	`trimmed_hash` text NOT NULL,
	`sealed_id` integer NOT NULL,
	`sealed_hash` text NOT NULL
);
--> statement-breakpoint
ALTER TABLE `audit_log` ADD `hash` text;--> statement-breakpoint
DROP TRIGGER `audit_log_no_update`;--> statement-breakpoint
DROP TRIGGER `audit_log_no_delete`;--> statement-breakpoint
-- A row that asks for no id has -1 before it is inserted.
CREATE TRIGGER `audit_log_no_replace` BEFORE INSERT ON `audit_log`
WHEN NEW.`hash` IS NOT NULL OR (NEW.`id` <> -1 AND NEW.`id` <= (SELECT max(`id`) FROM `audit_log`))
BEGIN
	SELECT RAISE(ABORT, 'audit_log is append-only');
END;--> statement-breakpoint
CREATE TRIGGER `audit_log_counts_up` AFTER INSERT ON `audit_log` WHEN NEW.`id` < 1 BEGIN
	SELECT RAISE(ABORT, 'audit_log is append-only');
END;--> statement-breakpoint
CREATE TRIGGER `audit_log_no_update` BEFORE UPDATE ON `audit_log`
WHEN OLD.`hash` IS NOT NULL OR NEW.`hash` IS NULL OR length(NEW.`hash`) <> 64
	OR NEW.`id` IS NOT OLD.`id` OR NEW.`timestamp` IS NOT OLD.`timestamp`
	OR NEW.`user_id` IS NOT OLD.`user_id` OR NEW.`username` IS NOT OLD.`username`
	OR NEW.`action` IS NOT OLD.`action` OR NEW.`resource` IS NOT OLD.`resource`
	OR NEW.`details` IS NOT OLD.`details` OR NEW.`ip` IS NOT OLD.`ip`
	OR NEW.`request_id` IS NOT OLD.`request_id`
BEGIN
	SELECT RAISE(ABORT, 'audit_log is append-only');
END;--> statement-breakpoint
CREATE TRIGGER `audit_log_no_delete` BEFORE DELETE ON `audit_log`
WHEN OLD.`id` > coalesce((SELECT `trimmed_id` FROM `audit_chain`), 0)
BEGIN
	SELECT RAISE(ABORT, 'audit_log is append-only');
END;--> statement-breakpoint
CREATE TRIGGER `audit_chain_begins_empty` BEFORE INSERT ON `audit_chain`
WHEN NEW.`trimmed_id` <> 0 OR NEW.`sealed_id` <> 0 OR EXISTS (SELECT 1 FROM `audit_chain`)
BEGIN
	SELECT RAISE(ABORT, 'audit_chain only grows');
END;--> statement-breakpoint
-- What is trimmed was sealed, and an entry that stays tells of it.
CREATE TRIGGER `audit_chain_grows` BEFORE UPDATE ON `audit_chain`
WHEN NEW.`sealed_id` < OLD.`sealed_id` OR NEW.`trimmed_id` < OLD.`trimmed_id` OR NEW.`trimmed_id` > NEW.`sealed_id`
	OR (NEW.`trimmed_id` = OLD.`trimmed_id` AND NEW.`trimmed_hash` <> OLD.`trimmed_hash`)
	OR (NEW.`trimmed_id` > OLD.`trimmed_id` AND NOT EXISTS (
		SELECT 1 FROM `audit_log` WHERE `action` = 'audit_trimmed' AND `id` > NEW.`trimmed_id`
			AND json_extract(`details`, '$.lastId') = NEW.`trimmed_id`
			AND json_extract(`details`, '$.lastHash') = NEW.`trimmed_hash`))
BEGIN
	SELECT RAISE(ABORT, 'audit_chain only grows');
END;--> statement-breakpoint
CREATE TRIGGER `audit_chain_stays` BEFORE DELETE ON `audit_chain` BEGIN
	SELECT RAISE(ABORT, 'audit_chain only grows');
END;
