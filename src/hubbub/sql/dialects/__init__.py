"""SQL dialects: one module per engine, each with a table of functions. The planner does not depend on the engine."""
