# Without an output, it looks at the machine every time it is asked for, and prints to the terminal.
rule doctor:
    input:
        script=house("scripts/doctor.py"),
    log:
        f"{RESULTS}/logs/doctor.log",
    # It looks at the machine that it is asked on.
    localrule: True
    conda:
        "../envs/benchmark.yaml"
    message:
        "Looking for what would make numbers measured on this machine worse"
    shell:
        "python3 {input.script:q} 2>&1 | tee {log:q}"
