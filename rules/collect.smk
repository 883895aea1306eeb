rule collect_measurements:
    input:
        rows=merged_files if MERGED else measured_rows,
        library=ANALYSIS_LIBRARY,
    output:
        measurements=f"{RESULTS}/measurements.parquet",
    log:
        f"{RESULTS}/logs/collect_measurements.log",
    conda:
        "../envs/analysis.yaml"
    params:
        several_hosts=CONFIG.several_hosts,
        # Folders of machines, each with its name, where their runs are merged.
        merged=[(run.folder, run.name) for run in MERGED],
    message:
        "Collecting the rows of all trials"
    script:
        "../scripts/collect_measurements.py"
