ALTER TABLE `deleted_nodes` ADD `is_hidden` integer DEFAULT false NOT NULL;--> statement-breakpoint
CREATE INDEX `deleted_nodes_hidden` ON `deleted_nodes` (`node_num`) WHERE is_hidden;--> statement-breakpoint
DROP TRIGGER `nodes_back`;--> statement-breakpoint
-- A node that was hidden when it was deleted is hidden when it is heard again.
CREATE TRIGGER `nodes_back` AFTER INSERT ON `nodes` BEGIN
	UPDATE `nodes` SET `is_hidden` = true WHERE `id` = new.`id` AND EXISTS (SELECT 1 FROM `deleted_nodes` WHERE `node_num` = new.`node_num` AND `is_hidden`);
	DELETE FROM `deleted_nodes` WHERE `node_num` = new.`node_num`;
END;
