"""Private streams: arrivals are counted and forgotten, and what is kept between two of them is itself private."""
