ALTER TABLE `users` ADD `language` text;--> statement-breakpoint
ALTER TABLE `users` ADD `browser_language` text;--> statement-breakpoint
ALTER TABLE `users` ADD `units` text;--> statement-breakpoint
ALTER TABLE `alerts` ADD `fact` text;--> statement-breakpoint
-- What made a key doubtful has a name now, and an alert that was acknowledged must not fire again.
UPDATE `alerts` SET `key` = replace(replace(replace(replace(replace(`key`, '"another public key was announced"', '"changed"'), '"its public key is known to be weak"', '"weak"'), '"another node has the same public key"', '"shared"'), '"somebody sends in the name of this radio of the service"', '"own_spoofed"'), '"somebody seems to send in its name"', '"spoofed"') WHERE `kind` = 'key';
