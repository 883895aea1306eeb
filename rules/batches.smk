rule find_largest_batch:
    input:
        script=house("scripts/find_largest_batch.py"),
        code=measuring_code("batch_try", "largest_batch/*/{workload}/**/*.json"),
        dataset=dataset_of,
    output:
        f"{RESULTS}/largest_batch/{PLACED_SEARCH}.json",
    log:
        f"{RESULTS}/logs/find_largest_batch/{PLACED_SEARCH}.log",
    conda:
        "../envs/benchmark.yaml"
    threads: threads_of
    resources:
        **CLASS_RESOURCES,
        gpu=gpus_of,
        mem_mb=mem_mb_of,
        runtime=search_runtime_of,
    params:
        options=search_options_of,
        environment=environment_of,
    message:
        f"Searching {{wildcards.study}} for the largest batch: size {{wildcards.size}} on {{wildcards.device}}{OF_CLASS}, {{wildcards.precision}}, {{wildcards.protocol}}"
    shell:
        "python3 {input.script:q} {params.options:q} --dataset={input.dataset:q} --output={output:q} > {log:q} 2>&1"


rule collect_largest_batches:
    input:
        searches=in_a_full_run(SHOWN_SEARCHES),
        library=ANALYSIS_LIBRARY,
    output:
        parquet=kept("{results}/largest_batches.parquet"),
        csv=report(
            kept("{results}/largest_batches.csv"),
            caption="../report/largest_batches.rst",
            category="Tables",
            labels={"table": "largest batches"},
        ),
    log:
        "{results}/logs/collect_largest_batches.log",
    conda:
        "../envs/analysis.yaml"
    params:
        failures=failures_of("{results}/logs/collect_largest_batches.log"),
        several_hosts=CONFIG.several_hosts,
        asked=asked_in_part("find_largest_batch"),
        now=now_in_part,
    message:
        f"Collecting {len(SHOWN_SEARCHES)} searches for the largest batch"
    script:
        "../scripts/collect_largest_batches.py"
