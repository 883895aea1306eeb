# What every figure of a study is drawn from.
FIGURE_TABLES = {
    "measurements": rules.collect_measurements.output.measurements,
    "cells": rules.summarise_cells.output.parquet,
    "crossovers": rules.estimate_crossovers.output.parquet,
    "published": published_results_of,
    "library": ANALYSIS_LIBRARY,
}


rule plot_times:
    input:
        **FIGURE_TABLES,
        cost_models=rules.fit_cost_models.output.parquet,
    output:
        **figure_files("times", "time over size"),
    log:
        "{results}/logs/plot_times/{study}.log",
    conda:
        "../envs/analysis.yaml"
    params:
        study=study_of,
        failures=failures_of("{results}/logs/plot_times/{study}.log"),
    message:
        "Drawing time over size for {wildcards.study}"
    script:
        "../scripts/plot_times.py"


rule plot_speedups:
    input:
        **FIGURE_TABLES,
    output:
        **figure_files("speedups", "speed-up over size"),
    log:
        "{results}/logs/plot_speedups/{study}.log",
    conda:
        "../envs/analysis.yaml"
    params:
        study=study_of,
        failures=failures_of("{results}/logs/plot_speedups/{study}.log"),
    message:
        "Drawing the speed-up over size for {wildcards.study}"
    script:
        "../scripts/plot_speedups.py"


rule plot_precisions:
    input:
        **FIGURE_TABLES,
    output:
        **figure_files("precisions", "speed-up of precisions"),
    log:
        "{results}/logs/plot_precisions/{study}.log",
    conda:
        "../envs/analysis.yaml"
    params:
        study=study_of,
        failures=failures_of("{results}/logs/plot_precisions/{study}.log"),
    message:
        "Drawing the speed-up of each precision for {wildcards.study}"
    script:
        "../scripts/plot_precisions.py"


rule plot_memory:
    input:
        **FIGURE_TABLES,
    output:
        **figure_files("memory", "memory over size"),
    log:
        "{results}/logs/plot_memory/{study}.log",
    conda:
        "../envs/analysis.yaml"
    params:
        study=study_of,
        failures=failures_of("{results}/logs/plot_memory/{study}.log"),
    message:
        "Drawing the memory of {wildcards.study}"
    script:
        "../scripts/plot_memory.py"


rule plot_comparison:
    input:
        **FIGURE_TABLES,
    output:
        **figure_files("comparison", "cells side by side"),
    log:
        "{results}/logs/plot_comparison/{study}.log",
    conda:
        "../envs/analysis.yaml"
    params:
        study=study_of,
        failures=failures_of("{results}/logs/plot_comparison/{study}.log"),
    message:
        "Comparing the cells of {wildcards.study}"
    script:
        "../scripts/plot_comparison.py"


rule plot_latency:
    input:
        **FIGURE_TABLES,
    output:
        **figure_files("latency", "latency, right and wrong"),
    log:
        "{results}/logs/plot_latency/{study}.log",
    conda:
        "../envs/analysis.yaml"
    params:
        study=study_of,
        failures=failures_of("{results}/logs/plot_latency/{study}.log"),
    message:
        "Drawing the latencies of {wildcards.study}"
    script:
        "../scripts/plot_latency.py"


rule plot_throughput:
    input:
        **FIGURE_TABLES,
        largest_batches=largest_batches_of,
    output:
        **figure_files("throughput", "throughput over batch size"),
    log:
        "{results}/logs/plot_throughput/{study}.log",
    conda:
        "../envs/analysis.yaml"
    params:
        study=study_of,
        failures=failures_of("{results}/logs/plot_throughput/{study}.log"),
    message:
        "Drawing the throughput of {wildcards.study}"
    script:
        "../scripts/plot_throughput.py"


rule plot_trade_off:
    input:
        **FIGURE_TABLES,
    output:
        **figure_files("trade_off", "time against memory"),
    log:
        "{results}/logs/plot_trade_off/{study}.log",
    conda:
        "../envs/analysis.yaml"
    params:
        study=study_of,
        failures=failures_of("{results}/logs/plot_trade_off/{study}.log"),
    message:
        "Drawing time against memory for {wildcards.study}"
    script:
        "../scripts/plot_trade_off.py"


rule plot_utilisation:
    input:
        **FIGURE_TABLES,
    output:
        **figure_files("utilisation", "achieved rate over size"),
    log:
        "{results}/logs/plot_utilisation/{study}.log",
    conda:
        "../envs/analysis.yaml"
    params:
        study=study_of,
        failures=failures_of("{results}/logs/plot_utilisation/{study}.log"),
    message:
        "Drawing the achieved rate of {wildcards.study}"
    script:
        "../scripts/plot_utilisation.py"


rule plot_host_share:
    input:
        **FIGURE_TABLES,
    output:
        **figure_files("host_share", "the host's share of a step"),
    log:
        "{results}/logs/plot_host_share/{study}.log",
    conda:
        "../envs/analysis.yaml"
    params:
        study=study_of,
        failures=failures_of("{results}/logs/plot_host_share/{study}.log"),
    message:
        "Drawing the host's share of a step for {wildcards.study}"
    script:
        "../scripts/plot_host_share.py"


rule plot_energy:
    input:
        **FIGURE_TABLES,
    output:
        **figure_files("energy", "energy and money of a step"),
    log:
        "{results}/logs/plot_energy/{study}.log",
    conda:
        "../envs/analysis.yaml"
    params:
        study=study_of,
        failures=failures_of("{results}/logs/plot_energy/{study}.log"),
        price_per_hour=CONFIG.prices,
        currency=CONFIG.currency,
    message:
        "Drawing the energy of {wildcards.study}"
    script:
        "../scripts/plot_energy.py"
