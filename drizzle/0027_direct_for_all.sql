-- The permission on messages decides whether anybody reads or writes any: nobody has narrowed direct messages yet.
UPDATE `users` SET `direct_read` = 1, `direct_write` = 1;
