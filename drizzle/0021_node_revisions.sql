ALTER TABLE `nodes` ADD `revision` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
DROP TRIGGER `nodes_inserted`;--> statement-breakpoint
DROP TRIGGER `nodes_updated`;--> statement-breakpoint
-- Who writes many nodes at once gives them their revision itself, and the counter follows once.
CREATE TRIGGER `nodes_inserted` AFTER INSERT ON `nodes` WHEN new.`revision` > (SELECT `value` FROM `revisions` WHERE `name` = 'nodes') BEGIN
	UPDATE `revisions` SET `value` = new.`revision` WHERE `name` = 'nodes';
END;--> statement-breakpoint
CREATE TRIGGER `nodes_updated` AFTER UPDATE ON `nodes` WHEN new.`revision` > (SELECT `value` FROM `revisions` WHERE `name` = 'nodes') BEGIN
	UPDATE `revisions` SET `value` = new.`revision` WHERE `name` = 'nodes';
END;--> statement-breakpoint
-- Anybody else does not think of it.
CREATE TRIGGER `nodes_inserted_unrevised` AFTER INSERT ON `nodes` WHEN new.`revision` = 0 BEGIN
	UPDATE `nodes` SET `revision` = (SELECT `value` + 1 FROM `revisions` WHERE `name` = 'nodes') WHERE `id` = new.`id`;
END;--> statement-breakpoint
CREATE TRIGGER `nodes_updated_unrevised` AFTER UPDATE ON `nodes` WHEN new.`revision` = old.`revision` BEGIN
	UPDATE `nodes` SET `revision` = (SELECT `value` + 1 FROM `revisions` WHERE `name` = 'nodes') WHERE `id` = new.`id`;
END;
