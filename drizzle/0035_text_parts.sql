-- At sixteen parts of one size, FTS5 merges all of them within one insert, which takes a second in a large index. The
-- service merges some pages in each slice and each minute, long before there are 64.
INSERT INTO `messages_text` (`messages_text`, rank) VALUES ('crisismerge', 64);--> statement-breakpoint
INSERT INTO `nodes_text` (`nodes_text`, rank) VALUES ('crisismerge', 64);--> statement-breakpoint
INSERT INTO `audit_log_text` (`audit_log_text`, rank) VALUES ('crisismerge', 64);
