rule list_problems:
    input:
        measurements=rules.collect_measurements.output.measurements,
        cells=rules.summarise_cells.output.parquet,
        quality=rules.summarise_quality.output.parquet if TRAININGS else [],
        searches=rules.collect_largest_batches.output.parquet if SHOWN_SEARCHES else [],
        library=ANALYSIS_LIBRARY,
    output:
        parquet=kept("{results}/problems.parquet"),
        csv=report(
            kept("{results}/problems.csv"),
            caption="../report/problems.rst",
            category="Tables",
            labels={"table": "problems"},
        ),
    log:
        "{results}/logs/list_problems.log",
    conda:
        "../envs/analysis.yaml"
    params:
        failures=failures_of("{results}/logs/list_problems.log"),
        asked=all_asked,
    message:
        "Listing what is missing, failed or flagged"
    script:
        "../scripts/list_problems.py"
