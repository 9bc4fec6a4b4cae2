import { catalog } from '../../language.ts'
export const auditDamageTexts = catalog('auditDamageTexts', {
  title: 'The audit log is damaged',
  found: 'Found:',
  help: 'This service never changes or deletes an entry. Either somebody with access to the database changed it, perhaps to hide something, or the disk has a fault.',
  steps: [
    'Copy the database file as it is, before anything else: it is the evidence.',
    'Open the page Audit log. It checks the entries and names the first one that is damaged; all before it are unchanged.',
    'Compare what follows with a copy: an export, a backup, or what was sent to AUDIT_ANCHOR_URL.',
    'Find out who can write to the database file. Check users, sessions, API tokens and destinations of alerts for what nobody here made.',
    'Restore the latest backup whose log is intact, if you no longer trust the data.',
  ],
  open: 'Audit log',
  confirm: 'Dealt with it',
  confirmSure:
    'Hide this notice for all administrators? What was found stays in the audit log, and so does who confirmed it.',
})
