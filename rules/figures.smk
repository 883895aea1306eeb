rule plot_times:
    input:
        measurements=rules.collect_measurements.output.measurements,
        cells=rules.summarise_cells.output.parquet,
        crossovers=rules.estimate_crossovers.output.parquet,
        cost_models=rules.fit_cost_models.output.parquet,
        published=published_results_of,
        library=ANALYSIS_LIBRARY,
    output:
        svg=report(
            "{results}/figures/{study}/times.svg",
            caption="../report/times.rst",
            category="{study}",
            labels={"figure": "time over size"},
        ),
        png="{results}/figures/{study}/times.png",
    log:
        "{results}/logs/plot_times/{study}.log",
    conda:
        "../envs/analysis.yaml"
    params:
        study=study_of,
    message:
        "Drawing time over size for {wildcards.study}"
    script:
        "../scripts/plot_times.py"


rule plot_speedups:
    input:
        measurements=rules.collect_measurements.output.measurements,
        cells=rules.summarise_cells.output.parquet,
        crossovers=rules.estimate_crossovers.output.parquet,
        published=published_results_of,
        library=ANALYSIS_LIBRARY,
    output:
        svg=report(
            "{results}/figures/{study}/speedups.svg",
            caption="../report/speedups.rst",
            category="{study}",
            labels={"figure": "speed-up over size"},
        ),
        png="{results}/figures/{study}/speedups.png",
    log:
        "{results}/logs/plot_speedups/{study}.log",
    conda:
        "../envs/analysis.yaml"
    params:
        study=study_of,
    message:
        "Drawing the speed-up over size for {wildcards.study}"
    script:
        "../scripts/plot_speedups.py"


rule plot_comparison:
    input:
        measurements=rules.collect_measurements.output.measurements,
        cells=rules.summarise_cells.output.parquet,
        crossovers=rules.estimate_crossovers.output.parquet,
        published=published_results_of,
        library=ANALYSIS_LIBRARY,
    output:
        svg=report(
            "{results}/figures/{study}/comparison.svg",
            caption="../report/comparison.rst",
            category="{study}",
            labels={"figure": "cells side by side"},
        ),
        png="{results}/figures/{study}/comparison.png",
    log:
        "{results}/logs/plot_comparison/{study}.log",
    conda:
        "../envs/analysis.yaml"
    params:
        study=study_of,
    message:
        "Comparing the cells of {wildcards.study}"
    script:
        "../scripts/plot_comparison.py"


rule plot_latency:
    input:
        measurements=rules.collect_measurements.output.measurements,
        cells=rules.summarise_cells.output.parquet,
        crossovers=rules.estimate_crossovers.output.parquet,
        published=published_results_of,
        library=ANALYSIS_LIBRARY,
    output:
        svg=report(
            "{results}/figures/{study}/latency.svg",
            caption="../report/latency.rst",
            category="{study}",
            labels={"figure": "latency, right and wrong"},
        ),
        png="{results}/figures/{study}/latency.png",
    log:
        "{results}/logs/plot_latency/{study}.log",
    conda:
        "../envs/analysis.yaml"
    params:
        study=study_of,
    message:
        "Drawing the latencies of {wildcards.study}"
    script:
        "../scripts/plot_latency.py"


rule plot_throughput:
    input:
        measurements=rules.collect_measurements.output.measurements,
        cells=rules.summarise_cells.output.parquet,
        crossovers=rules.estimate_crossovers.output.parquet,
        published=published_results_of,
        largest_batches=largest_batches_of,
        library=ANALYSIS_LIBRARY,
    output:
        svg=report(
            "{results}/figures/{study}/throughput.svg",
            caption="../report/throughput.rst",
            category="{study}",
            labels={"figure": "throughput over batch size"},
        ),
        png="{results}/figures/{study}/throughput.png",
    log:
        "{results}/logs/plot_throughput/{study}.log",
    conda:
        "../envs/analysis.yaml"
    params:
        study=study_of,
    message:
        "Drawing the throughput of {wildcards.study}"
    script:
        "../scripts/plot_throughput.py"


rule plot_trade_off:
    input:
        measurements=rules.collect_measurements.output.measurements,
        cells=rules.summarise_cells.output.parquet,
        crossovers=rules.estimate_crossovers.output.parquet,
        published=published_results_of,
        library=ANALYSIS_LIBRARY,
    output:
        svg=report(
            "{results}/figures/{study}/trade_off.svg",
            caption="../report/trade_off.rst",
            category="{study}",
            labels={"figure": "time against memory"},
        ),
        png="{results}/figures/{study}/trade_off.png",
    log:
        "{results}/logs/plot_trade_off/{study}.log",
    conda:
        "../envs/analysis.yaml"
    params:
        study=study_of,
    message:
        "Drawing time against memory for {wildcards.study}"
    script:
        "../scripts/plot_trade_off.py"


rule plot_utilisation:
    input:
        measurements=rules.collect_measurements.output.measurements,
        cells=rules.summarise_cells.output.parquet,
        crossovers=rules.estimate_crossovers.output.parquet,
        published=published_results_of,
        library=ANALYSIS_LIBRARY,
    output:
        svg=report(
            "{results}/figures/{study}/utilisation.svg",
            caption="../report/utilisation.rst",
            category="{study}",
            labels={"figure": "achieved rate over size"},
        ),
        png="{results}/figures/{study}/utilisation.png",
    log:
        "{results}/logs/plot_utilisation/{study}.log",
    conda:
        "../envs/analysis.yaml"
    params:
        study=study_of,
    message:
        "Drawing the achieved rate of {wildcards.study}"
    script:
        "../scripts/plot_utilisation.py"
