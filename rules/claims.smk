rule check_claims:
    input:
        measurements=rules.collect_measurements.output.measurements,
        crossovers=rules.estimate_crossovers.output.parquet,
        # Only where a study trains models.
        quality=rules.summarise_quality.output.parquet if TRAININGS else [],
        library=ANALYSIS_LIBRARY,
    output:
        parquet=kept("{results}/claims.parquet"),
        csv=report(
            kept("{results}/claims.csv"),
            caption="../report/claims.rst",
            category="Tables",
            labels={"table": "claims"},
        ),
    log:
        "{results}/logs/check_claims.log",
    conda:
        "../envs/analysis.yaml"
    params:
        failures=failures_of("{results}/logs/check_claims.log"),
        claims=claims_of(CONFIG.studies),
        steps_per_run={name: study.steps_per_run for name, study in STUDIES.items()},
    message:
        "Checking what the sources say"
    script:
        "../scripts/check_claims.py"
