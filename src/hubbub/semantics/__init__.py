"""What a promise means: from ε and δ to what somebody could learn about one person."""
