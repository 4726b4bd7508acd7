"""Documents about a deployment, written from its ledger and hubbub.yaml: registry entry, assessments, data sheet."""
