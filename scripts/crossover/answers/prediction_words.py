"""What is said of a size that a reader asks about: by scripts/predict_time.py and by the page's box alike."""

from __future__ import annotations

WORDS = {
    "heading": (
        "{study} at {size} {size_name}{parameters}. What to expect, not what is certain; "
        "± is one standard deviation of a trial:"
    ),
    "parameters": ", {count} parameters",
    "parameters_between": ", about {count} parameters (interpolated)",
    "no_size": "{size} is no {kind}; allowed: whole numbers from 1 on",
    "nothing": "study '{study}': no time at size {size} and no model to expect one by ({reasons})",
    "device": "{device}: {time}{words}",
    "time": "{time} a step{spread}{run}; ",
    "spread": " (±{share})",
    "run": ", {time} for {steps} steps",
    "measured": "measured, 95 % interval {low} to {high} over {trials} trials",
    "measured_once": "measured, one trial",
    "measured_without_time": "no time: measured, {status}",
    "measured_without_time_why": "no time: measured, {status}, {reason}",
    "by_model": "by the cost model of {sizes} sizes",
    "by_model_of_single_trials": "by the cost model of {sizes} sizes, one trial each",
    "from_end": "{words}, carried on from the time measured at {end}",
    "too_far": "no time: too far outside of what was measured ({low} to {high} {size_name}) to say",
    "no_model": "no time: no model ({reason})",
    "warning": "warning for {devices}: {warning}",
    "flagged": "flagged {flags}; the report says what that means",
    "below": "size {size} lies below the smallest ({end}) that was measured, by a factor of {factor}",
    "above": "size {size} lies above the largest ({end}) that was measured, by a factor of {factor}",
    "steep": (
        "from size {end} to {size} the model's time changes by a factor of {factor}, which no measurement bears out"
    ),
    "limited": "the model's exponent is held at a limit ({exponent}), so the times do not follow its curve",
    "flat": "the time hardly grows over the sizes measured, so it is not known from where on it will",
    "rough": "the model is rough: it misses measured sizes by up to {largest}, {rms} in the root mean square",
    "lost": "size {size} ended {status}, so this one may have no time at all",
    "ahead_far": "ahead: not told more than {far} times outside of the sizes measured, or of the times at their ends",
    "ahead_limited": "ahead: not told outside of the sizes measured, with the exponent of {devices} at a limit",
    "ahead_rough": "ahead: open; {by}, no more than the models miss at measured sizes",
    "ahead_unsure": "perhaps ahead: {by} (how sure that is, is not known)",
    "ahead_open": "ahead: open; {by}, no more than the spread",
    "ahead": "probably ahead: {by}",
    "by": "{first}, {ratio} times as fast as {second}",
}
"""Templates, by what they say; what stands in braces is a text or a number that is a text already."""


def said(template: str, **values: object) -> str:
    """A template with its values put in."""
    return WORDS[template].format(**values)
