rule compare_runs:
    input:
        measurements=compared_measurements,
        library=ANALYSIS_LIBRARY,
    output:
        csv=kept(f"{RESULTS}/comparison.csv"),
    log:
        f"{RESULTS}/logs/compare_runs.log",
    # Its table belongs on the terminal of whoever asks.
    localrule: True
    conda:
        "../envs/analysis.yaml"
    params:
        failures=failures_of(f"{RESULTS}/logs/compare_runs.log"),
        names=[run.name for run in CONFIG.compare],
        studies=[run.study for run in CONFIG.compare],
    message:
        "Comparing {params.names[0]} with {params.names[1]}"
    script:
        "../scripts/compare_runs.py"
