"""What curator and client share: estimates, releases, budget overviews, charts, data sheets, and how they are shown."""
