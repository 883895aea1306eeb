# Read and check the config, inspect the machine, and make the plan that the rules use.

from dataclasses import replace

from crossover.config.configuration import read_configuration
from crossover.config.layers import module_layers, read_mapping, without_effect
from crossover.config.words import HERE
from crossover.plan.before_run import check_config, notes_before_run, reference_folders
from crossover.plan.jobs import Jobs
from crossover.plan.keys import outdated_datasets, outdated_results, reasons_text
from crossover.plan.rounds import Rounds
from crossover.plan.run_plan import RunPlan
from crossover.plan.stages import REST
from snakemake.dag import DAG

with one_line_errors():
    # Checked before Snakemake reads it, so that a mistake in the YAML is reported in one line with its position.
    read_mapping(REPOSITORY / "config" / "config.yaml")


configfile: get_file("config/config.yaml")


with one_line_errors():
    layers = module_layers(config, RUN.config_entries) if IS_MODULE else RUN.config_layers()
    CONFIG = read_configuration(layers, REPOSITORY / "config")
    MACHINE = RUN.machine()
    PLAN = RunPlan.of(CONFIG, MACHINE.devices, MACHINE.gpus)
    check_config(CONFIG, MACHINE, PLAN.devices)
    SHIPPED = Path(get_file("config/reference"))
    REFERENCES = reference_folders(CONFIG.keys.reference, PLAN.devices, SHIPPED)
    PLAN = replace(PLAN, has_references=bool(REFERENCES))
    JOBS = Jobs(CONFIG, MACHINE, RUN.cores, RUN.gpus)
    ROUNDS = Rounds(PLAN, JOBS.at_once)
    RESULTS = CONFIG.results
    # The folder on disk: Snakemake puts a module's `prefix` before paths of rules.
    FOLDER = RUN.placed(RESULTS)
    SEVERAL_HOSTS = CONFIG.keys.cluster.several_hosts or MACHINE.elsewhere
    OUTDATED = {}
    if RUN.is_main:
        # Snakemake's own records may be missing, for example in a copy of the results.
        OUTDATED = outdated_results(Path(FOLDER), JOBS.key_of_result, JOBS.time_limit_s, PLAN.repeats)
        RUN.measure_again(DAG, [*OUTDATED, *outdated_datasets(Path(FOLDER), JOBS.dataset_keys)])
        planned = {path: OUTDATED[path] for path in map(RUN.placed, PLAN.results_of_grid) if path in OUTDATED}
    if TELLS:
        if planned:
            tell(f"Note: {reasons_text(planned)}")
        if ignored := without_effect(layers, RUN.config_entries, CONFIG.complete):
            tell(f"Note: {ignored}")
        for note in notes_before_run(
            CONFIG, MACHINE, PLAN.devices, REFERENCES, SHIPPED, None if SEVERAL_HOSTS else Path(FOLDER)
        ):
            tell(note)


envvars:
    "CROSSOVER_MACHINE",
    "CROSSOVER_INVOCATION",


# A GPU limit given on the command line applies to each machine, not to a whole cluster.
resource_scopes:
    gpu="local",


wildcard_constraints:
    **dict.fromkeys(("batch_size", "size", "trial", "seed", "round", "stage", "repeat"), r"\d+"),
    study="|".join(PLAN.study),
    dataset="|".join(CONFIG.datasets),
    variant=r"\w+",
    machine="|".join(CONFIG.keys.cluster.classes or (HERE,)),
    again=r"(-repeat-\d+)?",
    part=f"({REST})?",
