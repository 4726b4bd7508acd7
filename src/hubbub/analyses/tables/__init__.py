"""What is made to be published: tables, workloads and synthetic data, each from one charge."""
