rule summarise_cells:
    input:
        measurements=rules.collect_measurements.output.measurements,
        library=ANALYSIS_LIBRARY,
    output:
        parquet=kept("{results}/cells.parquet"),
        csv=report(
            kept("{results}/cells.csv"),
            caption="../report/cells.rst",
            category="Tables",
            labels={"table": "cells"},
        ),
    log:
        "{results}/logs/summarise_cells.log",
    conda:
        "../envs/analysis.yaml"
    params:
        failures=failures_of("{results}/logs/summarise_cells.log"),
        # Where runs are merged, the sizes of their own studies are not known.
        sizes=None if MERGED else {name: study.sizes for name, study in STUDIES.items()},
    message:
        "Summarising trials into cells"
    script:
        "../scripts/summarise_cells.py"


rule estimate_crossovers:
    input:
        measurements=rules.collect_measurements.output.measurements,
        library=ANALYSIS_LIBRARY,
    output:
        parquet=kept("{results}/crossovers.parquet"),
        csv=report(
            kept("{results}/crossovers.csv"),
            caption="../report/crossovers.rst",
            category="Tables",
            labels={"table": "crossovers"},
        ),
    log:
        "{results}/logs/estimate_crossovers.log",
    conda:
        "../envs/analysis.yaml"
    params:
        failures=failures_of("{results}/logs/estimate_crossovers.log"),
        x_axes={name: study.x_axis for name, study in STUDIES.items()},
        price_per_hour=CONFIG.prices,
    message:
        "Estimating crossovers"
    script:
        "../scripts/estimate_crossovers.py"


rule fit_cost_models:
    input:
        measurements=rules.collect_measurements.output.measurements,
        library=ANALYSIS_LIBRARY,
    output:
        parquet=kept("{results}/cost_models.parquet"),
        csv=report(
            kept("{results}/cost_models.csv"),
            caption="../report/cost_models.rst",
            category="Tables",
            labels={"table": "cost models"},
        ),
    log:
        "{results}/logs/fit_cost_models.log",
    conda:
        "../envs/analysis.yaml"
    params:
        failures=failures_of("{results}/logs/fit_cost_models.log"),
        steps_per_run={name: study.steps_per_run for name, study in STUDIES.items()},
    message:
        "Fitting cost models"
    script:
        "../scripts/fit_cost_models.py"


rule estimate_cores_worth:
    input:
        measurements=rules.collect_measurements.output.measurements,
        library=ANALYSIS_LIBRARY,
    output:
        parquet=kept("{results}/cores_worth.parquet"),
        csv=report(
            kept("{results}/cores_worth.csv"),
            caption="../report/cores_worth.rst",
            category="Tables",
            labels={"table": "cores worth"},
        ),
    log:
        "{results}/logs/estimate_cores_worth.log",
    conda:
        "../envs/analysis.yaml"
    params:
        failures=failures_of("{results}/logs/estimate_cores_worth.log"),
        studies=ON_FEWER_CORES,
    message:
        "Estimating how many CPU cores each accelerator is worth"
    script:
        "../scripts/estimate_cores_worth.py"
