-- What a collector delivers belongs to its token: without it no node is a radio of ours because a collector said so.
ALTER TABLE `sources` ADD `token_id` integer REFERENCES api_tokens(id) ON DELETE set null;--> statement-breakpoint
CREATE TRIGGER `sources_released` AFTER UPDATE OF `token_id` ON `sources` WHEN old.`token_id` IS NOT NULL AND new.`token_id` IS NULL BEGIN
	UPDATE `nodes` SET `is_local` = 0 WHERE `node_num` = old.`local_node_num` AND NOT EXISTS (
		SELECT 1 FROM `sources` WHERE `local_node_num` = old.`local_node_num` AND (`kind` <> 'ingest' OR `token_id` IS NOT NULL)
	);
END;--> statement-breakpoint
-- Tokens that may have delivered keep on doing so, if their owner might make such a token today.
UPDATE `api_tokens` SET `scopes` = json_insert(`scopes`, '$[#]', 'ingest')
WHERE `last_used_at` IS NOT NULL
	AND EXISTS (SELECT 1 FROM `sources` WHERE `kind` = 'ingest')
	AND EXISTS (SELECT 1 FROM json_each(`api_tokens`.`scopes`) WHERE `value` = 'nodes:write')
	AND EXISTS (SELECT 1 FROM `users` u WHERE u.`id` = `api_tokens`.`user_id` AND (u.`is_admin` OR EXISTS (
		SELECT 1 FROM `user_permissions` p WHERE p.`user_id` = u.`id` AND p.`resource` = 'configuration' AND p.`can_write`
	)));--> statement-breakpoint
ALTER TABLE `channels` ADD `first_heard` integer;--> statement-breakpoint
ALTER TABLE `channels` ADD `last_heard` integer;--> statement-breakpoint
-- Anybody at a broker could make channels up, without an end: of each source those stay that came first.
DELETE FROM `channels` WHERE `channel_index` > 7 AND (`source_id`, `channel_index`) IN (
	SELECT `source_id`, `channel_index` FROM (
		SELECT `source_id`, `channel_index`, row_number() OVER (PARTITION BY `source_id` ORDER BY rowid) AS `place` FROM `channels` WHERE `channel_index` > 7
	) WHERE `place` > 200
);--> statement-breakpoint
UPDATE `channels` SET `first_heard` = 0, `last_heard` = CAST(strftime('%s', 'now') AS integer) * 1000 WHERE `channel_index` > 7;
