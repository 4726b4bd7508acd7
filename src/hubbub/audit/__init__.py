"""The independent receipt checker, black-box and grey-box audits, and the audit hubbub runs on itself."""
