rule collect_measurements:
    input:
        rows=measured_rows,
        library=ANALYSIS_LIBRARY,
    output:
        measurements=f"{RESULTS}/measurements.parquet",
    log:
        f"{RESULTS}/logs/collect_measurements.log",
    conda:
        "../envs/analysis.yaml"
    threads: min(4, all_cores())
    params:
        several_hosts=CONFIG.several_hosts,
    message:
        "Collecting the rows of all trials"
    script:
        "../scripts/collect_measurements.py"
