-- FTS5 would merge hundreds of pages within one insert now and then, 50 ms of it: the service merges some in each slice.
INSERT INTO `messages_text` (`messages_text`, rank) VALUES ('automerge', 0);--> statement-breakpoint
INSERT INTO `nodes_text` (`nodes_text`, rank) VALUES ('automerge', 0);--> statement-breakpoint
INSERT INTO `audit_log_text` (`audit_log_text`, rank) VALUES ('automerge', 0);