"""Tables of what bench/suite.py measured, in Markdown, for the terminal and for the document."""

import statistics

GIB = 1 << 30
MIB = 1 << 20

BARE_GOAL = 1.25  # reshard's time over the bare pipeline's, at most
WARM_GOAL = 3.0  # cp's time over reshard's, where cp pays for new page cache
MINDSPORE_GOAL = 10.0  # MindSpore's time over reshard's
EFFICIENCY_GOAL = 0.75  # of two jobs in memory


def _median(contender):
    return statistics.median(contender["seconds"])


def _rows(header, rows):
    """Prints a Markdown table with columns as wide as they need to be."""
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    for row in [header, ["-" * width for width in widths], *rows]:
        print("| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths)) + " |")
    print()


def _number(value, form):
    return "-" if value is None else form.format(value)


def _details(case, mode):
    contenders = case["modes"][mode]
    bare, copy = (_median(contenders[name]) for name in ("bare pipeline", "cp -r, sync"))
    rows = []
    for name, found in contenders.items():
        if "failure" in found:
            rows.append([name, "failed"] + ["-"] * 9)
            continue
        median = _median(found)
        cached = [None if found[f"{side}_cache_bytes"] is None else found[f"{side}_cache_bytes"] / MIB
                  for side in ("source", "target")]
        rows.append([
            name, f"{median:.2f}", f"{min(found['seconds']):.2f} - {max(found['seconds']):.2f}",
            str(len(found["seconds"])), f"{found['bytes'] / GIB / median:.2f}",
            f"{median / bare:.2f}", f"{median / copy:.2f}", f"{found['cpu_seconds_per_gib']:.2f}",
            _number(found["system_calls_per_gib"], "{:.0f}"),
            f"{found['rss_anon_bytes'] / MIB:.1f}",
            f"{_number(cached[0], '{:.0f}')} + {_number(cached[1], '{:.0f}')}"])
    print(f"{case['title']}, {mode}: {case['read_bytes'] / GIB:.2f} GiB of sources, "
          f"{case['written_bytes'] / GIB:.2f} GiB written\n")
    _rows(["", "median s", "min - max", "runs", "GiB/s", "time / bare", "time / cp", "CPU s/GiB",
           "calls/GiB", "RssAnon MiB", "cache MiB, source + target"], rows)
    for name, found in contenders.items():
        if "failure" in found:
            print(f"{name}: {found['failure']}\n")


class Verdicts:
    """Values beside their goals; remembers what was missed."""

    def __init__(self):
        self.missed = []

    def at_most(self, value, goal, what):
        return self._judge(value, goal, value <= goal, "at most", what)

    def at_least(self, value, goal, what):
        return self._judge(value, goal, value >= goal, "at least", what)

    def _judge(self, value, goal, is_met, bound, what):
        if is_met:
            return f"{value:.2f}"
        self.missed.append(f"{what}: {value:.2f}, the goal is {bound} {goal:.2f}")
        return f"**{value:.2f}**"


def _summary(cases, mode, verdicts):
    rows = []
    for case in cases:
        contenders = case["modes"].get(mode)
        if contenders is None:
            continue
        where = f"{case['title']}, {mode}"
        reshard = contenders["reshard"]
        time, cpu = _median(reshard), reshard["cpu_seconds_per_gib"]
        unchecked = contenders["no checksums"]["cpu_seconds_per_gib"]
        copy = contenders["cp -r, sync"]
        goal = WARM_GOAL if mode == "warm" else case["cold_goal"]
        faster = _median(copy) / time
        mindspore = contenders.get("MindSpore, sync")
        if mindspore is None:
            against = "not run"
        elif "failure" in mindspore:
            against = "failed"
        else:
            against = verdicts.at_least(_median(mindspore) / time, MINDSPORE_GOAL,
                                        f"{where}: times as fast as MindSpore")
        cpu_goal = copy["cpu_seconds_per_gib"] + max(0, cpu - unchecked)
        rows.append([
            case["title"], f"{time:.2f}", f"{reshard['bytes'] / GIB / time:.2f}",
            verdicts.at_most(time / _median(contenders["bare pipeline"]), BARE_GOAL,
                             f"{where}: time / bare pipeline"),
            f"{faster:.2f}" if goal is None else verdicts.at_least(
                faster, goal, f"{where}: times as fast as cp" +
                (" (a goal where cp pays for new page cache)" if mode == "warm" else "")),
            against,
            verdicts.at_most(cpu, cpu_goal, f"{where}: CPU seconds for each GiB"),
            f"{unchecked:.2f}", f"{copy['cpu_seconds_per_gib']:.2f}"])
    if rows:
        _rows([mode, "s", "GiB/s", "time / bare", "times cp", "times MindSpore", "CPU s/GiB",
               "without checksums", "cp"], rows)


def _jobs(cases, verdicts):
    rows = []
    for case in cases:
        one, two = (_median(case["contenders"][f"--jobs {jobs}"]) for jobs in (1, 2))
        spread = case["contenders"]["--jobs 2"]["seconds"]
        rows.append([case["title"], f"{case['read_bytes'] / GIB:.2f}", f"{one:.3f}", f"{two:.3f}",
                     f"{min(spread):.3f} - {max(spread):.3f}", str(len(spread)),
                     verdicts.at_least(one / two / 2, EFFICIENCY_GOAL,
                                       f"{case['title']}: efficiency of two jobs in memory")])
    if rows:
        _rows(["in memory", "GiB", "--jobs 1, s", "--jobs 2, s", "min - max", "runs",
               "efficiency"], rows)


def print_all(results):
    """Prints the summary with the goals, what was missed, then each case in full."""
    machine = results["machine"]
    print(f"{results['reshard']}; {machine['processor']}, {machine['cores']} cores, "
          f"{machine['memory_bytes'] / GIB:.0f} GiB, Linux {machine['kernel']}, "
          f"{machine['file_system']}; medians; load average "
          f"{results['load_average']:.1f}\n")
    verdicts = Verdicts()
    for mode in ("warm", "cold"):
        _summary(results["cases"], mode, verdicts)
    _jobs(results["jobs_cases"], verdicts)
    print("Goals that were missed:\n" if verdicts.missed else "All goals were met.\n")
    for line in verdicts.missed:
        print(f"- {line}")
    print()
    for case in results["cases"]:
        for mode in case["modes"]:
            _details(case, mode)
