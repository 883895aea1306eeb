rule find_largest_batch:
    input:
        script=house("scripts/find_largest_batch.py"),
        library=MEASUREMENT_LIBRARY,
        workload=workload_of,
        dataset=dataset_of,
    output:
        f"{RESULTS}/largest_batch/{SEARCH_PATH}.json",
    log:
        f"{RESULTS}/logs/find_largest_batch/{SEARCH_PATH}.log",
    conda:
        "../envs/benchmark.yaml"
    threads: threads_of
    resources:
        gpu=gpus_of,
        mem_mb=mem_mb_of,
        runtime=search_runtime_of,
    params:
        dataset=dataset_option,
        options=search_options_of,
        environment=environment_of,
    message:
        "Searching {wildcards.study} for the largest batch: size {wildcards.size} on {wildcards.device}, {wildcards.precision}, {wildcards.protocol}"
    shell:
        "python3 {input.script:q} {params.options:q} {params.dataset:q} --output={output:q} > {log:q} 2>&1"
