rule collect_measurements:
    input:
        rows=collect(f"{RESULTS}/cells/{{cell.path}}/trial-{{trial}}.parquet", cell=CELLS, trial=TRIALS),
        library=ANALYSIS_LIBRARY,
    output:
        measurements=f"{RESULTS}/measurements.parquet",
    log:
        f"{RESULTS}/logs/collect_measurements.log",
    conda:
        "../envs/analysis.yaml"
    params:
        several_hosts=CONFIG.several_hosts,
    message:
        f"Collecting the rows of {len(ROUNDS)} trials"
    script:
        "../scripts/collect_measurements.py"
