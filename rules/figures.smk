rule plot_times:
    input:
        measurements=rules.collect_measurements.output.measurements,
        cells=rules.summarise_cells.output.parquet,
        crossovers=rules.estimate_crossovers.output.parquet,
        published=published_results_of,
        library=ANALYSIS_LIBRARY,
    output:
        svg=report(
            f"{RESULTS}/figures/{{study}}/times.svg",
            caption="../report/times.rst",
            category="{study}",
            labels={"figure": "time over size"},
        ),
        png=f"{RESULTS}/figures/{{study}}/times.png",
    log:
        f"{RESULTS}/logs/plot_times/{{study}}.log",
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
            f"{RESULTS}/figures/{{study}}/speedups.svg",
            caption="../report/speedups.rst",
            category="{study}",
            labels={"figure": "speed-up over size"},
        ),
        png=f"{RESULTS}/figures/{{study}}/speedups.png",
    log:
        f"{RESULTS}/logs/plot_speedups/{{study}}.log",
    conda:
        "../envs/analysis.yaml"
    params:
        study=study_of,
    message:
        "Drawing the speed-up over size for {wildcards.study}"
    script:
        "../scripts/plot_speedups.py"
