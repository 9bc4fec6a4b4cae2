-- As for `nodes`: a random starting point, and one look-up tells that no message is new or changed.
INSERT INTO `revisions` (`name`, `value`) VALUES ('messages', abs(random() / 4096));--> statement-breakpoint
CREATE TRIGGER `messages_inserted` AFTER INSERT ON `messages` BEGIN
	UPDATE `revisions` SET `value` = `value` + 1 WHERE `name` = 'messages';
END;--> statement-breakpoint
CREATE TRIGGER `messages_updated` AFTER UPDATE ON `messages` BEGIN
	UPDATE `revisions` SET `value` = `value` + 1 WHERE `name` = 'messages';
END;--> statement-breakpoint
CREATE TRIGGER `messages_deleted` AFTER DELETE ON `messages` BEGIN
	UPDATE `revisions` SET `value` = `value` + 1 WHERE `name` = 'messages';
END;
