"""What may be said of a table: candidates are tested here, whatever learner proposed them.

Start at `verdicts.Referee.judge`. Everything rests on one family of models, regressions of one column on
others (`regressions`), because it shuts the other columns out with few degrees of freedom. `models` finds
what each regression holds, `gates` where a pair is linked, `counted` what is judged without regressions;
`differences` compares groups of rows.
"""
