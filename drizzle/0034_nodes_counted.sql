ALTER TABLE `revisions` ADD `row_count` integer;--> statement-breakpoint
-- A row of its own for the number of nodes was one more write for each node that comes or goes.
UPDATE `revisions` SET `row_count` = (SELECT count(*) FROM `nodes`) WHERE `name` = 'nodes';--> statement-breakpoint
DELETE FROM `row_counts` WHERE `table_name` = 'nodes';--> statement-breakpoint
DROP TRIGGER `nodes_counted`;--> statement-breakpoint
DROP TRIGGER `nodes_uncounted`;--> statement-breakpoint
DROP TRIGGER `nodes_inserted`;--> statement-breakpoint
CREATE TRIGGER `nodes_inserted` AFTER INSERT ON `nodes` BEGIN
	UPDATE `revisions` SET `value` = max(`value`, NEW.`revision`), `row_count` = `row_count` + 1 WHERE `name` = 'nodes';
END;--> statement-breakpoint
DROP TRIGGER `nodes_deleted`;--> statement-breakpoint
CREATE TRIGGER `nodes_deleted` AFTER DELETE ON `nodes` BEGIN
	UPDATE `revisions` SET `value` = `value` + 1, `row_count` = `row_count` - 1 WHERE `name` = 'nodes';
END;
