"""Simulate crossovers with a known true size, for the coverage of their interval."""

from __future__ import annotations

from best_coverage import NO_DEVICE, best_cases, best_coverage_rows
from crossover_coverage import INSIDE, cases, coverage_rows, spread_cases, stair_cases, timed_cases
from simulation import simulate_cases, simulation_options

from crossover.tables.frames import write_csv

CROSSINGS = ("bracketed", "reversed", "multiple")
"""Statuses that claim a crossing."""


def main(arguments: list[str]) -> None:
    """Simulate, write tables with one row per case, method and status, and print summaries of them."""
    options = simulation_options(__doc__, arguments, simulations=500, output="results/checks/coverage.csv")
    coverage = simulate_cases(coverage_rows, cases(), options)
    spreads = simulate_cases(coverage_rows, spread_cases(), options)
    stairs = simulate_cases(coverage_rows, stair_cases(), options)
    timed = simulate_cases(coverage_rows, timed_cases(), options)
    best = simulate_cases(best_coverage_rows, best_cases(), options)
    write_csv(coverage, options.output)
    write_csv(spreads, options.output.with_name(f"spread_{options.output.name}"))
    write_csv(stairs, options.output.with_name(f"stair_{options.output.name}"))
    write_csv(timed, options.output.with_name(f"timed_{options.output.name}"))
    write_csv(best, options.output.with_name(f"best_{options.output.name}"))
    inside, claimed = coverage["crossing"] == INSIDE, coverage["status"].isin(CROSSINGS)
    columns, axes = ["share", "coverage", "half_width", "error"], ["spread", "effort", "crossing"]
    by_shape = coverage[inside & (coverage["status"] == "bracketed")].groupby(["shape", "effort", "method"])[columns]
    invented = coverage[~inside & (coverage["method"] == "ours")].assign(share=coverage["share"].where(claimed, 0))
    print("Crossings within the range\n", by_shape.mean().round(3).to_string(), "\n", sep="")
    tied = coverage[inside & (coverage["status"] == "edge_tie") & (coverage["method"] == "ours")]
    print("Ties at an end, with a crossing within the range: how often it lies beyond the bound")
    print(tied.groupby(["shape", "effort"])[["share", "coverage"]].mean().round(3).to_string(), "\n", sep="")
    print("Crossings that are not there: largest share of simulations that found one")
    print(invented.groupby(["crossing", "effort"])["share"].max().unstack().round(3).to_string())
    stepping = stairs[(stairs["method"] == "ours") & (stairs["status"] == "bracketed")]
    print("\nStairs: coverage of the interval, and of all that is printed (the interval or the significant sizes)")
    stepping = stepping.groupby(["shape", "effort", "crossing"], sort=False)[[*columns, "printed"]]
    print(stepping.mean().round(3).to_string())
    ours = spreads[spreads["method"] == "ours"]
    crossing = ours[(ours["crossing"] == INSIDE) & (ours["status"] == "bracketed")]
    print("\nOther spreads between trials, with a crossing within the range")
    print(crossing.groupby(["spread", "effort"], sort=False)[columns].mean().round(3).to_string(), "\n", sep="")
    shares = ours["share"].where(ours["status"].isin(CROSSINGS), 0).groupby([ours[axis] for axis in axes], sort=False)
    print("Crossings that are not there: share of simulations that found one")
    print(shares.sum().unstack("crossing").drop(columns=INSIDE).round(3).to_string())
    print("\nRuns with `minutes`, with a crossover within the range")
    found = timed[(timed["method"] == "ours") & (timed["status"] == "bracketed")]
    print(found.groupby(["spread", "effort", "minutes"], sort=False)[columns].mean().round(3).to_string())
    bracketed = best[best["status"] == "bracketed"].groupby(["differ", "candidates", "effort", "method"])[columns]
    print("\nDevices at their best\n", bracketed.mean().round(3).to_string(), "\n", sep="")
    print("Candidates and devices that all take the same time: share of each status")
    equal = best[(best["differ"] == NO_DEVICE) & (best["method"] == "ours")]
    print(equal.set_index(["candidates", "effort", "status"])[["share", "chance"]].round(3).to_string())
