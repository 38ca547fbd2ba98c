"""Metrics, a diversity certificate and a gallery page, made from saved archives.

It never needs the training code, and works on archives made elsewhere.

- :func:`~evaluation.entropy.knn_entropy`, by exact
  :func:`~evaluation.neighbours.kth_neighbour_distances`;
- :func:`~evaluation.torque.torque_distance`;
- :func:`~evaluation.routes.ball_route`, :func:`~evaluation.routes.count_routes`;
- :func:`~evaluation.heatmap.position_heatmaps`;
- :func:`~evaluation.landmarks.policy_landmarks`;
- :func:`~evaluation.distances.distance_matrices`, under every state-distance measure;
- :func:`~evaluation.certificate.certify`: which policies are really different;
- :func:`~evaluation.gridworld.diversity_table`: the paper's table 1;
- :func:`~evaluation.population.load_population` reads a run or archive,
  :func:`~evaluation.rollout.replay` plays its policies again;
- :func:`~evaluation.report.write_report` makes the page;
- :mod:`~evaluation.command_line`: ``python -m evaluation``, whose commands are in
  :mod:`~evaluation.commands`.
"""
