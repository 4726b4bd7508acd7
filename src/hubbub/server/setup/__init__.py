"""The set-up page: `hubbub serve` in a folder without hubbub.yaml asks for what hubbub.yaml has to say."""
