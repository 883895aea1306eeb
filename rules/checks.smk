# Checks of the measuring itself, for anyone who doubts it. None of them is part of a run.


rule check_overhead:
    input:
        measurements=f"{RESULTS}/measurements.parquet",
        library=ANALYSIS_LIBRARY,
    output:
        csv=f"{RESULTS}/checks/overhead.csv",
    log:
        f"{RESULTS}/logs/check_overhead.log",
    # Its table belongs on the terminal of whoever asks.
    localrule: True
    conda:
        "../envs/analysis.yaml"
    message:
        "Telling what trials cost beside their measuring"
    script:
        "../scripts/check_overhead.py"


rule check_isolation:
    input:
        script=house("scripts/check_isolation.py"),
        datasets=collect(f"{RESULTS}/datasets/{{dataset}}.safetensors", dataset=["disc", "higgs"]),
    output:
        # The pairs lie beside it; were they an output too, Snakemake would delete them before the check could go on.
        table=f"{RESULTS}/checks/isolation.csv",
    log:
        f"{RESULTS}/logs/check_isolation.log",
    conda:
        "../envs/benchmark.yaml"
    threads: all_cores()
    resources:
        gpu=gpu_if_any(DEVICES),
    params:
        trials=isolation_trials,
        pairs=20,
    message:
        "Measuring in forks of the trial server and in fresh processes, in turn"
    shell:
        "python3 {input.script:q} --trials {params.trials:q} --pairs={params.pairs} --output={output.table:q} 2>&1 | tee {log:q}"


rule check_side_by_side:
    input:
        script=house("scripts/check_side_by_side.py"),
        datasets=collect(f"{RESULTS}/datasets/{{dataset}}.safetensors", dataset=["disc", "higgs"]),
    output:
        table=f"{RESULTS}/checks/side_by_side.csv",
    log:
        f"{RESULTS}/logs/check_side_by_side.log",
    # It is about the GPUs of this machine.
    localrule: True
    conda:
        "../envs/benchmark.yaml"
    threads: all_cores()
    params:
        trials=side_by_side_trials,
        gpus=gpus_side_by_side,
        pairs=8,
    message:
        "Measuring on one GPU alone and on {params.gpus} at once, in turn"
    shell:
        "python3 {input.script:q} --trials {params.trials:q} --gpus={params.gpus} --pairs={params.pairs}"
        " --output={output.table:q} 2>&1 | tee {log:q}"


rule check_timer:
    input:
        script=house("scripts/check_timer.py"),
        disc=f"{RESULTS}/datasets/disc.safetensors",
        higgs=f"{RESULTS}/datasets/higgs.safetensors",
    output:
        f"{RESULTS}/checks/timer-{{device}}.csv",
    log:
        f"{RESULTS}/logs/check_timer-{{device}}.log",
    conda:
        "../envs/benchmark.yaml"
    threads: all_cores()
    resources:
        gpu=gpus_of,
    message:
        "Timing steps on {wildcards.device} in three ways"
    shell:
        "python3 {input.script:q} --device={wildcards.device} --disc={input.disc:q} --higgs={input.higgs:q}"
        " --output={output:q} 2>&1 | tee {log:q}"


rule check_coverage:
    input:
        library=ANALYSIS_LIBRARY,
    output:
        csv=f"{RESULTS}/checks/coverage.csv",
        savings=f"{RESULTS}/checks/coverage.savings.csv",
    log:
        f"{RESULTS}/logs/check_coverage.log",
    # Its tables belong on the terminal of whoever asks.
    localrule: True
    conda:
        "../envs/analysis.yaml"
    threads: all_cores()
    params:
        simulations=500,
        seed=0,
    message:
        "Simulating crossovers that are known"
    script:
        "../scripts/check_coverage.py"


rule check_scale:
    input:
        script=house("scripts/check_scale.py"),
        library=ANALYSIS_LIBRARY + library("checking/*.py"),
    output:
        csv=f"{RESULTS}/checks/scale.csv",
    log:
        f"{RESULTS}/logs/check_scale.log",
    # It runs Snakemake beside this one, on the same machine.
    localrule: True
    conda:
        "../envs/analysis.yaml"
    threads: all_cores()
    params:
        cells=[1000, 10000],
        jobs=200,
        python=sys.executable,
    message:
        "Measuring what the workflow itself takes for many cells"
    shell:
        "python3 {input.script:q} --cells {params.cells} --jobs {params.jobs} --python={params.python:q}"
        " --output={output.csv:q} 2>&1 | tee {log:q}"
