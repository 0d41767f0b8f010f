"""Files and devices read into the market's values: pool files, tariffs, records of demand, shipped assets, NVML."""
