# Rules for datasets, trials, trainings, searches for the largest batch, and roofs. What a result depends on is in `params.key`, with
# the code's content instead of file times. A change of `resources` triggers no new measurement.
# The names in capitals that are not set here are from rules/config.smk.

# Set only in a run with classes of nodes.
CLASS = "{machine}/" if CONFIG.keys.cluster.classes else ""
OF_CLASS = " of {wildcards.machine}" if CONFIG.keys.cluster.classes else ""
# The folder of a cell, as in `Cell.path`; a search is for all batch sizes.
CELL = f"{{study}}/{{workload}}/{{variant}}/{{protocol}}/batch-{{batch_size}}/{{precision}}/{{execution}}/size-{{size}}/{CLASS}{{device}}"
CELL_OF_SEARCH = CELL.replace("batch-{batch_size}/", "")
ROW = f"{RESULTS}/cells/{CELL}/trial-{{trial}}{{again}}.parquet"
TRAINING = f"{RESULTS}/trainings/{CELL}/seed-{{seed}}.parquet"
SEARCH = f"{RESULTS}/largest_batch/{CELL_OF_SEARCH}.json"


rule make_dataset:
    input:
        real_files=ancient(get_real_files),
    output:
        dataset=f"{RESULTS}/datasets/{{dataset}}.safetensors",
    log:
        f"{RESULTS}/logs/make_dataset/{{dataset}}.log",
    # Trials that waited for their dataset would fall behind their round.
    priority: ROUNDS.first
    conda:
        get_environment("analysis")
    threads: JOBS.share
    params:
        options=get_dataset_options,
        key=get_dataset_key,
    message:
        "Making dataset {wildcards.dataset}"
    script:
        "../scripts/make_dataset.py"


rule measure_cell:
    input:
        dataset=get_dataset(ROW),
    output:
        row=ROW,
    log:
        f"{RESULTS}/logs/measure_cell/{CELL}/trial-{{trial}}{{again}}.log",
    priority: ROUNDS.priority
    conda:
        get_environment("benchmark")
    threads: JOBS.threads
    resources:
        **JOBS.resources_of_class,
        gpu=JOBS.gpu,
        mem_mb=JOBS.mem_mb,
        runtime=JOBS.trial_min,
    params:
        script=get_script("measure_cell"),
        key=get_key("trial"),
        job=get_job("trial"),
        cpu_threads=CONFIG.keys.cpu_threads,
    message:
        f"Measuring {{wildcards.study}}: size {{wildcards.size}} on {{wildcards.device}}{OF_CLASS}, {{wildcards.precision}}, {{wildcards.protocol}}, trial {{wildcards.trial}}{{wildcards.again}}"
    shell:
        "python3 {params.script:q} {params.job:q} --device={wildcards.device} --cpu-threads={params.cpu_threads} --trial={wildcards.trial}"
        " --dataset={input.dataset:q} --output={output:q} > {log:q} 2>&1"


rule train_model:
    input:
        dataset=get_dataset(TRAINING),
    output:
        row=TRAINING,
    log:
        f"{RESULTS}/logs/train_model/{CELL}/seed-{{seed}}.log",
    conda:
        get_environment("benchmark")
    threads: JOBS.threads
    resources:
        **JOBS.resources_of_class,
        gpu=JOBS.gpu,
        mem_mb=JOBS.mem_mb,
        runtime=JOBS.runtime_min,
    params:
        script=get_script("train_model"),
        key=get_key("training"),
        job=get_job("training"),
        cpu_threads=CONFIG.keys.cpu_threads,
    message:
        f"Training {{wildcards.study}}: size {{wildcards.size}} on {{wildcards.device}}{OF_CLASS}, {{wildcards.precision}}, seed {{wildcards.seed}}"
    shell:
        "python3 {params.script:q} {params.job:q} --device={wildcards.device} --cpu-threads={params.cpu_threads} --seed={wildcards.seed}"
        " --dataset={input.dataset:q} --output={output:q} > {log:q} 2>&1"


rule find_largest_batch:
    input:
        dataset=get_dataset(SEARCH),
    output:
        search=SEARCH,
    log:
        f"{RESULTS}/logs/find_largest_batch/{CELL_OF_SEARCH}.log",
    conda:
        get_environment("benchmark")
    threads: JOBS.threads
    resources:
        **JOBS.resources_of_class,
        gpu=JOBS.gpu,
        mem_mb=JOBS.mem_mb,
        runtime=JOBS.search_min,
    params:
        script=get_script("find_largest_batch"),
        key=get_key("batch_try"),
        job=get_job("batch_try"),
        cpu_threads=CONFIG.keys.cpu_threads,
    message:
        f"Searching {{wildcards.study}} for the largest batch: size {{wildcards.size}} on {{wildcards.device}}{OF_CLASS}, {{wildcards.precision}}, {{wildcards.protocol}}"
    shell:
        "python3 {params.script:q} {params.job:q} --device={wildcards.device} --cpu-threads={params.cpu_threads}"
        " --dataset={input.dataset:q} --output={output:q} > {log:q} 2>&1"


rule probe_roofs:
    output:
        roofs=f"{RESULTS}/roofs/{CLASS}{{device}}.json",
    log:
        f"{RESULTS}/logs/probe_roofs/{CLASS}{{device}}.log",
    conda:
        get_environment("benchmark")
    threads: JOBS.threads
    resources:
        **JOBS.resources_of_class,
        gpu=JOBS.gpu,
        mem_mb=4000,
        runtime=10,
    params:
        script=get_script("probe_roofs"),
        key=get_key("probe"),
        job=get_job("probe"),
        cpu_threads=CONFIG.keys.cpu_threads,
    message:
        f"Measuring the peak rates of {{wildcards.device}}{OF_CLASS}"
    shell:
        "python3 {params.script:q} {params.job:q} --device={wildcards.device} --cpu-threads={params.cpu_threads}"
        " --output={output:q} > {log:q} 2>&1"
