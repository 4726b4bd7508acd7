"""Studies of the crowd sanitizers: each measures one construction or remark of the 2005 paper."""
