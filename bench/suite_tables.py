"""Tables of what bench/suite.py measured, in Markdown, for the terminal and for the document."""

import statistics

GIB = 1 << 30
MIB = 1 << 20

# reshard's time over that of the fastest simple shape, at most: by kind of page cache, of tiny
# parameters, and cold with --memory-limit 64M.
LIMIT_GOALS = {"warm": 1.25, "cold": 1.2}
TINY_GOAL = 1.4
SMALL_GOAL = 1.5
MINDSPORE_GOAL = 10.0  # MindSpore's time over reshard's
EFFICIENCY_GOAL = 0.75  # of two jobs in memory

# Contenders that are no simple shapes.
RESHARD, SMALL, COPY, MINDSPORE = "reshard", "reshard, 64 MiB", "cp -r, sync", "MindSpore, sync"


def _median(contender):
    return statistics.median(contender["seconds"])


def _limit(contenders):
    """Returns the name of the fastest simple shape, and its time."""
    others = (RESHARD, SMALL, COPY, MINDSPORE)
    times = {name: _median(found) for name, found in contenders.items()
             if name not in others and not name.startswith("by ")}
    name = min(times, key=times.get)
    return name, times[name]


def _rows(header, rows):
    """Prints a Markdown table with columns as wide as they need to be."""
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    for row in [header, ["-" * width for width in widths], *rows]:
        print("| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths)) + " |")
    print()


def _cached(found, side):
    value = found[f"{side}_cache_bytes"]
    return "-" if value is None else f"{value / MIB:.0f}"


def _details(case, mode):
    contenders = case["modes"][mode]
    _, limit = _limit(contenders)
    rows = []
    for name, found in contenders.items():
        if "failure" in found:
            rows.append([name, "failed"] + ["-"] * 7)
            continue
        median = _median(found)
        rows.append([
            name, f"{median:.2f}", f"{min(found['seconds']):.2f} - {max(found['seconds']):.2f}",
            str(len(found["seconds"])), f"{found['bytes'] / GIB / median:.2f}",
            f"{median / limit:.2f}", f"{found['cpu_seconds_per_gib']:.2f}",
            f"{found['rss_anon_bytes'] / MIB:.1f}",
            f"{_cached(found, 'source')} + {_cached(found, 'target')}"])
    print(f"{case['title']}, {mode}: {case['read_bytes'] / GIB:.2f} GiB of sources, "
          f"{case['written_bytes'] / GIB:.2f} GiB written\n")
    _rows(["", "median s", "min - max", "runs", "GiB/s", "time / limit", "CPU s/GiB", "RssAnon MiB",
           "cache MiB, source + target"], rows)
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


def _against_mindspore(contenders, time, where, verdicts):
    found = contenders.get(MINDSPORE)
    if found is None:
        return "not run"
    if "failure" in found:
        return "failed"
    return verdicts.at_least(_median(found) / time, MINDSPORE_GOAL,
                             f"{where}: times as fast as MindSpore")


def _summary(cases, mode, verdicts):
    rows = []
    for case in cases:
        contenders = case["modes"].get(mode)
        if contenders is None:
            continue
        where = f"{case['title']}, {mode}"
        reshard = contenders[RESHARD]
        time, small, copy = (_median(contenders[name]) for name in (RESHARD, SMALL, COPY))
        shape, limit = _limit(contenders)
        goal = TINY_GOAL if case["name"] == "tiny" else LIMIT_GOALS[mode]
        of_small = f"{where}: time with --memory-limit 64M / the fastest shape's"
        rows.append([
            case["title"], f"{time:.2f}", f"{reshard['bytes'] / GIB / time:.2f}",
            f"{limit:.2f} ({shape})",
            verdicts.at_most(time / limit, goal, f"{where}: time / the fastest shape's"),
            verdicts.at_most(small / limit, SMALL_GOAL, of_small) if mode == "cold" else
            f"{small / limit:.2f}",
            # Where the shape is slower than cp, too, it is not to be asked for.
            verdicts.at_least(copy / time, min(1, copy / limit), f"{where}: times as fast as cp"),
            _against_mindspore(contenders, time, where, verdicts),
            f"{reshard['cpu_seconds_per_gib']:.2f}"])
    if rows:
        _rows([mode, "s", "GiB/s", "fastest shape, s", "time / shape", "64 MiB / shape", "times cp",
               "times MindSpore", "CPU s/GiB"], rows)


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
