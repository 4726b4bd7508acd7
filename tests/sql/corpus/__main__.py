"""Write the .plan files anew: `python -m tests.sql.corpus` from the project's root, then read the diff."""

from tests.sql.corpus.queries import HERE, entries, shown

if __name__ == "__main__":
    texts: dict[str, list[str]] = {}
    for entry in entries():
        texts.setdefault(f"{entry.world}/{entry.file}", []).append(f"-- {entry.name}\n{shown(entry.planned())}\n")
    for place, blocks in texts.items():
        (HERE / f"{place}.plan").write_text("\n".join(blocks))
    print(f"{sum(map(len, texts.values()))} plans in {len(texts)} files")
