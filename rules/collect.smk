rule collect_measurements:
    input:
        rows=in_a_full_run(merged_files if MERGED else measured_rows),
        library=ANALYSIS_LIBRARY,
    output:
        measurements=kept("{results}/measurements.parquet"),
    log:
        "{results}/logs/collect_measurements.log",
    conda:
        "../envs/analysis.yaml"
    params:
        failures=failures_of("{results}/logs/collect_measurements.log"),
        several_hosts=CONFIG.several_hosts,
        merged=MERGED_FOLDERS,
        asked=asked_in_part("measure_cell"),
        settings=settings_in_part,
        now=now_in_part,
    message:
        "Collecting the rows of all trials"
    script:
        "../scripts/collect_measurements.py"
